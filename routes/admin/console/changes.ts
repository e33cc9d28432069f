export { changesPage as GET } from "../../../lib/console/changes.tsx";
