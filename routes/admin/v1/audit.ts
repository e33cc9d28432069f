export { audit as POST } from "../../../lib/admin/audit.ts";
