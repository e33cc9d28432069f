import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { playgroundPage } = await import("../../../lib/console/playground.tsx");
  return playgroundPage(request, context);
}

export async function POST(request: Request, context: RouteContext): Promise<Response> {
  const { sendFromForm } = await import("../../../lib/console/playground.tsx");
  return sendFromForm(request, context);
}
