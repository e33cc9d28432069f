export { groupPage as GET } from "../../../../lib/console/groups.tsx";
