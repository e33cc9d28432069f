import { requestsPage } from "../../../lib/console/requests.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return requestsPage(request, context);
}
