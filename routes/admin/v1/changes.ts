export { listChanges as GET } from "../../../lib/admin/changes.ts";
