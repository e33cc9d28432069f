export { showBudgets as GET } from "../../../lib/admin/budgets.ts";
