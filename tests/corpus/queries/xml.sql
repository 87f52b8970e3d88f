-- xmlelement
select id, xmlelement(name item, body)::text as x from papers;

-- xmlelement with attributes
select id, xmlelement(name item, xmlattributes(id as number, 'v' as kind), 'text', id)::text as x from papers;

-- xmlforest
select id, xmlforest(id, body as text)::text as x from papers;

-- xmlconcat
select id, xmlconcat(xmlelement(name a, id), xmlelement(name b))::text as x from papers;

-- xmlpi
select id, xmlpi(name php, 'echo')::text as x from papers;

-- xmlroot
select id, xmlroot(body::xml, version '1.0', standalone yes)::text as x from papers;

-- xmlparse
select id, xmlparse(document body)::text as x from papers;

-- xmlserialize
select id, xmlserialize(content body::xml as text) as x from papers;

-- is document
select id, body::xml is document as x, body::xml is not document as y from papers;

-- xmlagg
select id % 2 as k, xmlagg(body::xml order by id)::text as x from papers group by 1;

-- xmlexists
select id from papers where xmlexists('//i[text() = "x"]' passing by value (body::xml));

-- xpath
select id, xpath('//i/text()', body::xml)::text[] as x from papers;

-- xpath_exists
select id from papers where xpath_exists('/r[@a="1"]', body::xml);

-- xmltable
select p.id, x.n, x.v from papers p, xmltable('/r/i' passing (p.body::xml) columns n for ordinality, v text
path '.') x;

-- xmltable with defaults
select p.id, x.* from papers p, xmltable('/r' passing (p.body::xml) columns a int path '@a' not null, b text
path 'zzz' default 'none') x;

-- xmltable with namespaces
select p.id, x.v from papers p, xmltable(xmlnamespaces('http://x' as n), '/r/i' passing (p.body::xml) columns
v text path '.') x;

-- xmltable left joined
select p.id, x.v from papers p left join xmltable('/r/i' passing (p.body::xml) columns v text path '.') x on
x.v = 'x';

-- xmlcomment
select id, xmlcomment('c' || id)::text as x from papers;

-- xml text
select id, body::xml::text as x, xml_is_well_formed(body) as y from papers;
