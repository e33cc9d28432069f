export { explainUsage as GET } from "../../../../lib/admin/usage.ts";
