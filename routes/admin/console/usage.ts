export { usagePage as GET } from "../../../lib/console/usage.tsx";
export { compareFromForm as POST } from "../../../lib/console/upstream_usage.tsx";
