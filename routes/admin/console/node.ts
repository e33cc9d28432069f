import { nodesPage } from "../../../lib/console/nodes.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return nodesPage(request, context);
}
