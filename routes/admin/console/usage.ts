import { usagePage } from "../../../lib/console/usage.tsx";
import { compareFromForm } from "../../../lib/console/upstream_usage.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return usagePage(request, context);
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return compareFromForm(request, context);
}
