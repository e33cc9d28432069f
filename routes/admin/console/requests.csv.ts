import { requestsCsv } from "../../../lib/console/request_list.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return requestsCsv(request, context);
}
