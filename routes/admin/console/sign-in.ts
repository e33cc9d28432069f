import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { signInPage } = await import("../../../lib/console/sign_in.tsx");
  return signInPage(request, context);
}

export async function POST(request: Request, context: RouteContext): Promise<Response> {
  const { signIn } = await import("../../../lib/console/sign_in.tsx");
  return signIn(request, context);
}
