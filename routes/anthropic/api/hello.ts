export { greet as GET } from "../../../lib/status/health.ts";
