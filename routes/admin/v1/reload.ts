export { reload as POST } from "../../../lib/admin/config.ts";
