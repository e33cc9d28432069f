import { changeFromForm, keyPage } from "../../../../lib/console/keys.tsx";
import type { RouteContext } from "../../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return keyPage(request, context);
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return changeFromForm(request, context);
}
