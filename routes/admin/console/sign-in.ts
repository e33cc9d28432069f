import { signIn, signInPage } from "../../../lib/console/sign_in.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(): Response {
  return signInPage();
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return signIn(request, context);
}
