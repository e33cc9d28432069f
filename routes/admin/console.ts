export { overview as GET } from "../../lib/console/overview.tsx";
