import { signIn, signInPage } from "../../../lib/console/sign_in.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return signInPage(request, context);
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return signIn(request, context);
}
