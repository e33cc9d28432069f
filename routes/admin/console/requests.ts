export { requestsPage as GET } from "../../../lib/console/request_list.tsx";
