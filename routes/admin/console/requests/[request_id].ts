import { requestPage } from "../../../../lib/console/request_page.tsx";
import type { RouteContext } from "../../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return requestPage(request, context);
}
