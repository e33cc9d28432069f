import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { changesPage } = await import("../../../lib/console/changes.tsx");
  return changesPage(request, context);
}
