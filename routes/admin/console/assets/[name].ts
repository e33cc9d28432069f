import type { RouteContext } from "../../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { asset } = await import("../../../../lib/console/assets.ts");
  return asset(request, context);
}
