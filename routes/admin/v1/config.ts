export { showConfig as GET } from "../../../lib/admin/config.ts";
