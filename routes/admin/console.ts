import type { RouteContext } from "../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { overview } = await import("../../lib/console/overview.tsx");
  return overview(request, context);
}
