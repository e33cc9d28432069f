export { groupsPage as GET } from "../../../lib/console/groups.tsx";
