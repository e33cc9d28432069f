import { playgroundPage, sendFromForm } from "../../../lib/console/playground.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return playgroundPage(request, context);
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return sendFromForm(request, context);
}
