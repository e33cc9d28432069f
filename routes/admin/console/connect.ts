export { connectPage as GET } from "../../../lib/console/connect.tsx";
