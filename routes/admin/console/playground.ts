export { playgroundPage as GET, sendFromForm as POST } from "../../../lib/console/playground.tsx";
