import { signOut } from "../../../lib/console/sign_in.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return signOut(request, context);
}
