import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { usagePage } = await import("../../../lib/console/usage.tsx");
  return usagePage(request, context);
}

export async function POST(request: Request, context: RouteContext): Promise<Response> {
  const { compareFromForm } = await import("../../../lib/console/upstream_usage.tsx");
  return compareFromForm(request, context);
}
