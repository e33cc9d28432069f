import { deleteKey, editKey, showKey } from "../../../../lib/admin/keys.ts";
import type { RouteContext } from "../../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return showKey(request, context);
}

export function PATCH(request: Request, context: RouteContext): Promise<Response> {
  return editKey(request, context);
}

export function DELETE(request: Request, context: RouteContext): Promise<Response> {
  return deleteKey(request, context);
}
