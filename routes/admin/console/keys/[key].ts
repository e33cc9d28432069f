import type { RouteContext } from "../../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { keyPage } = await import("../../../../lib/console/keys.tsx");
  return keyPage(request, context);
}

export async function POST(request: Request, context: RouteContext): Promise<Response> {
  const { changeFromForm } = await import("../../../../lib/console/keys.tsx");
  return changeFromForm(request, context);
}
