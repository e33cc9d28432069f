import { requestPage } from "../../../../lib/console/requests.tsx";
import type { RouteContext } from "../../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return requestPage(request, context);
}
