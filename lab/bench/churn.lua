-- Connection churn: each event connects, runs one statement and closes.
function thread_init()
   driver = sysbench.sql.driver()
end

function event()
   local connection = driver:connect()
   connection:query("SELECT 1")
   connection:disconnect()
end
