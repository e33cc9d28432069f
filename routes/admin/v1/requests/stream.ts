import { streamRequests } from "../../../../lib/admin/request_stream.ts";
import type { RouteContext } from "../../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return streamRequests(request, context);
}
