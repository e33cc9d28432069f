export { health as GET } from "../../../lib/admin/health.ts";
