import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { keysPage } = await import("../../../lib/console/keys.tsx");
  return keysPage(request, context);
}

export async function POST(request: Request, context: RouteContext): Promise<Response> {
  const { createFromForm } = await import("../../../lib/console/keys.tsx");
  return createFromForm(request, context);
}
