import { createFromForm, keysPage } from "../../../lib/console/keys.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return keysPage(request, context);
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return createFromForm(request, context);
}
