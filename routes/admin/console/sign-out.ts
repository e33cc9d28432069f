import type { RouteContext } from "../../../lib/server/router.ts";

export async function POST(request: Request, context: RouteContext): Promise<Response> {
  const { signOut } = await import("../../../lib/console/sign_in.tsx");
  return signOut(request, context);
}
