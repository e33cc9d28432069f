import { connectPage } from "../../../lib/console/connect.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return connectPage(request, context);
}
