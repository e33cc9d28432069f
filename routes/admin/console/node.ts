import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { nodesPage } = await import("../../../lib/console/nodes.tsx");
  return nodesPage(request, context);
}
