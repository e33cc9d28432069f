import { rotateSecret } from "../../../../../lib/admin/keys.ts";
import type { RouteContext } from "../../../../../lib/server/router.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return rotateSecret(request, context);
}
