export { listRequests as GET } from "../../../lib/admin/requests.ts";
