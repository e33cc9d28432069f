export { sumUsage as GET } from "../../../lib/admin/usage.ts";
