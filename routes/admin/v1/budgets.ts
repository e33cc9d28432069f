import { showBudgets } from "../../../lib/admin/budgets.ts";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return showBudgets(request, context);
}
