export { streamRequests as GET } from "../../../../lib/admin/request_stream.ts";
