export { budgetsPage as GET } from "../../../lib/console/budgets.tsx";
