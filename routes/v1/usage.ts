export { showOwnUsage as GET } from "../../lib/status/own_usage.ts";
