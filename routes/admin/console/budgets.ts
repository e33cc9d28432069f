import { budgetsPage } from "../../../lib/console/budgets.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return budgetsPage(request, context);
}
