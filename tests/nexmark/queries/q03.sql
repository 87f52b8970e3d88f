-- local item suggestion: who sells in one category in some states
select p.name, p.city, p.state, a.id
from auction a
join person p on a.seller = p.id
where a.category = 10 and p.state in ('or', 'id', 'ca')
