export { serveAdminDocument as GET } from "../../../lib/admin/openapi.ts";
