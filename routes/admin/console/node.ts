export { nodesPage as GET } from "../../../lib/console/nodes.tsx";
