export { openResponsesSocket as GET } from "../../lib/responses/responses_socket.ts";
export { serveResponses as POST } from "../../lib/responses/serve_responses.ts";
