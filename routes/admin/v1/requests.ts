import { listRequests } from "../../../lib/admin/requests.ts";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return listRequests(request, context);
}
